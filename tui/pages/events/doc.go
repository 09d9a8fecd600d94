// Package events keeps what a daemon tells of its state changes and says each in words.
package events
