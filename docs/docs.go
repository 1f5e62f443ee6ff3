// Package docs holds what the programs show of their documentation.
package docs

import _ "embed"

// Operations is the page for operators, in Markdown.
//
//go:embed operations.md
var Operations string
