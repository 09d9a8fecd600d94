// Package query is the one way to choose, order and name rows of a fleet: columns as
// values, the filter language and the orders that commands and screens share. It is
// pure.
package query
