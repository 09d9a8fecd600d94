package nodeinit

// Self is this program's name; it is not copied to the node.
const Self = "aws-vpc-cni-init"

// Texts that guides and issues search for. They are kept verbatim.
const (
	textBinaries  = "Failed to install binaries"
	textPrimary   = "Failed to get primary IF"
	textSystem    = "Failed to configure system parameters"
	textIPv6      = "Failed to configure IPv6 settings"
	textDone      = "CNI init container done"
	textInstalled = "Copied all CNI plugin binaries to "
	textFoundMAC  = "Found primaryMAC "
	textFoundLink = "Found primaryIF "
	textUpdated   = "Updated %s to %s"
)
