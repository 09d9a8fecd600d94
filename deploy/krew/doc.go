// Package krew holds what packages cnictl as a plugin of kubectl: the manifest for krew's
// index with the script that builds its archives, and the program that kubectl asks for
// completions. Its tests hold the manifest to krew's rules.
package krew
