// Package netconf holds the configuration that the aws-cni plugin reads on stdin
// and the conflist it comes from: one set of types, read by plugin/vpc and rendered
// by plugin/install, so that neither can know a key the other does not.
//
// Reading is as lenient as the original: unknown keys are skipped, bad numbers fall
// back to defaults, and only what the original refuses is refused, in its words.
// The JSON is read by hand: linking encoding/json (and with it fmt and os) costs every
// start of the plugin 0.2 ms, and its first use as much again. Fuzz targets hold
// the reader to encoding/json's results and to its error texts.
package netconf
