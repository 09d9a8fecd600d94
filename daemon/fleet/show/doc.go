// Package show writes values of a fleet for people: strings of nodes made safe to
// print, counts, ages, bars and sparklines. It is pure: every screen and every table
// writes a thing the same way.
package show
