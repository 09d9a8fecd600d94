// Package pagetest drives one screen as the app does, over nodes of every kind that a
// screen must bear, and holds its frames to golden files. Test files alone import it.
package pagetest
