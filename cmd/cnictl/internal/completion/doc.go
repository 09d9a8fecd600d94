// Package completion keeps the names that shells complete: those that the last readings of
// a cluster told, in a small file of the user's cache. Completing asks no node and no API
// server, prompts for nothing and never fails: without the file there is nothing to offer.
package completion
