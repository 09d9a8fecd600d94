// Package query selects, orders and names rows of a fleet: it holds the columns, the filter
// language and the orders that commands and screens share. It is pure.
package query
