// Package skel is the frame of a CNI plugin that starts once per pod: the environment
// and the configuration are checked in the order, with the codes and with the texts of
// containernetworking/cni (skel, types, version), which is not linked because of what
// that costs a start (docs/decisions/012-own-code-in-the-plugin.md). Tests of the
// plugins compare with the library.
//
// [Run] hands the verbs that pass to the plugin; errors are printed on standard output.
package skel
