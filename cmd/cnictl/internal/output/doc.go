// Package output prints a command's output in every form of -o: tables, pages of one
// thing and frames drawn in place for people; CSV; and documents as JSON, YAML and through
// kubectl's printers. A List is what the commands that print rows have in common.
//
// It makes no requests, and escapes what a terminal or a spreadsheet would act on.
package output
