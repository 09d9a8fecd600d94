// Package install makes the files of a node that the container runtime uses: the text of
// 10-aws.conflist, from a template and settings, and programs and conflist in place.
//
// A file in place is replaced whole, durably and at once: runtimes start the programs at
// any moment, also while they are replaced.
//
// The template and its placeholders are part of the compatible surface: users mount
// templates of their own over the image's. So what a template says beyond the
// placeholders is kept byte for byte, keys that this package does not know included,
// and what is chained or left out is cut into its text.
package install
