// Package output prints a command's output in every form of -o: for people as tables, pages
// about one object, and frames drawn in place; as CSV; and as documents in JSON, YAML and
// through kubectl's printers. List is the common part of the commands that print rows.
//
// It makes no requests, and escapes whatever a terminal or a spreadsheet would act on.
package output
