// Package netconf holds the configuration that the aws-cni plugin reads on stdin
// and the conflist it comes from: one set of types, read by plugin/vpc and rendered
// by plugin/install, so that neither can know a key the other does not.
//
// Reading is as lenient as the original: unknown keys are skipped, bad numbers fall
// back to defaults, and only what the original refuses is refused, in its words.
// The usual input is read by a scanner of our own, because the first use of
// encoding/json costs a plugin run 0.2 ms; whatever the scanner does not take for
// granted goes to encoding/json, and both are held to the same result by a fuzz
// target.
package netconf
