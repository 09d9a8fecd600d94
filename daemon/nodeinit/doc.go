// Package nodeinit is the body of aws-vpc-cni-init, the privileged container that prepares
// a node before the daemon starts: it installs the plugins that come with the image and
// sets the kernel settings that the daemon's container, in which /proc/sys is read-only,
// cannot set.
//
// It runs to completion and leaves nothing running. Running it again changes nothing.
package nodeinit
