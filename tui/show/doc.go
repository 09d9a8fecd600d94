// Package show formats values of a fleet for people: strings from nodes made safe to print,
// counts, ages, bars and sparklines. It is pure. Every screen and every table formats a value the
// same way.
package show
