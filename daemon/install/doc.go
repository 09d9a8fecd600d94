// Package install writes the files on a node that the container runtime uses: it renders
// 10-aws.conflist from a template and settings, and installs the programs and the conflist.
//
// A file is replaced as a whole, durably and atomically: runtimes may start the programs at
// any moment, even while they are replaced.
//
// The template and its placeholders are part of the compatible surface: users mount their
// own templates over the image's. So everything in a template besides the placeholders is
// kept byte for byte, including keys that this package does not know, and plugins are added
// or removed by editing its text.
package install
