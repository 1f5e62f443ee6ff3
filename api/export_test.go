package api

import (
	"net/http"
	"slices"
)

// Routes has the methods of each path that Handler serves.
func Routes() map[string][]string {
	routes := map[string][]string{}
	for path, m := range newAPI(Options{}).routes() {
		for method := range m {
			routes[path] = append(routes[path], method)
		}
		if slices.Contains(routes[path], http.MethodGet) {
			routes[path] = append(routes[path], http.MethodHead)
		}
		slices.Sort(routes[path])
	}
	return routes
}
