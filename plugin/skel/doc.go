// Package skel is the frame of a CNI plugin that is started once per pod. It checks the
// environment and the configuration in the same order and with the same codes and texts as
// containernetworking/cni (skel, types, version), which is not linked because it makes
// every start slower (docs/decisions/012-own-code-in-the-plugin.md). The plugins' tests
// compare with the library.
//
// [Run] passes valid verbs on to the plugin; errors are printed on standard output.
package skel
