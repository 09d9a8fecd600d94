// Package completion completes arguments and flags, with the names that the last readings of
// a cluster told, kept in a small file of the user's cache. Completing asks no node and no API
// server, prompts for nothing and never fails: without the file there is nothing to offer.
package completion
