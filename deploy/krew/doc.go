// Package krew holds what packages cnictl as a plugin of kubectl: the manifest for krew's
// index with the script that builds its archives, and the program that kubectl asks for
// completions. Its tests hold the manifest to krew's rules.
//
// kubectl_complete-cni is not in krew's archives: krew links the one program that bin names
// onto PATH and nothing else, so that kubectl would never find it. Who installs from krew
// has the completion of cnictl itself; bin/ of a build and our own packages have both.
package krew
