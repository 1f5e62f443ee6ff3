// Package modeltest holds the model test: random plays, leaves, foreign writes,
// clock steps and passes on Redis, against a set in memory that says what the
// counts must be. There is no code to use here.
package modeltest
