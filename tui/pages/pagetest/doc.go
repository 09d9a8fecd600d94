// Package pagetest drives one screen as the app does, with nodes of every kind that a
// screen must handle, and compares its frames with golden files. Only test files import
// it.
package pagetest
