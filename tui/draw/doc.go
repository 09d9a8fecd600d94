// Package draw is how values look on a terminal, for commands and screens: lines of an exact width,
// gauges, charts, maps, wrapped text, and colours by meaning. It is pure: drawing reads a value and a
// size, and returns lines none of which is wider.
//
// Text enters a [Line] through functions that escape what could control a terminal, so what draws need
// not know where a text comes from.
package draw
