// Package output prints what a command has to say, in every form of -o: tables, pages of one
// thing and frames drawn in place for people; CSV; and documents as JSON, YAML and through
// kubectl's printers. A List is what the commands that print rows have in common.
//
// It asks nobody for anything, and escapes what a terminal or a spreadsheet would obey.
package output
