// Package krew packages cnictl as a kubectl plugin: the manifest for krew's index, which
// tools/release fills in, and the program that kubectl runs for completions. Its tests
// check the manifest against krew's rules.
//
// kubectl_complete-cni is not in krew's archives: krew links only the program named by bin
// onto PATH, so kubectl would never find it. Installed by krew, cnictl has only its own
// completion; the bin/ directory of a build and our own packages have both.
package krew
