// Package completion completes arguments and flags with names seen in recent readings of a
// cluster, from a small file in the user's cache. Completing makes no requests, never prompts
// and never fails: without the file there is nothing to offer.
package completion
