package launch

import "cnictl/daemon/config"

// Texts that guides, issues and support tools search for. They are kept verbatim.
const (
	textInstallPrograms = "Failed to install CNI binaries"
	textStartDaemon     = "Failed to execute command: ./aws-k8s-agent"
	textLocalIPv4       = "failed to retrieve local-ipv4 address in imds metadata"
	textNoGlobalIPv6    = config.TextNoGlobalIPv6 + ", error: "
	textGenerate        = "Failed to generate 10-awsconflist"
	textCopy            = "Failed to copy /10-aws.conflist"
	textWait            = "Failed to wait for IPAM daemon to complete"
	textTimedOut        = "Timed out waiting for IPAM daemon to start"

	textStarting   = "Starting IPAM daemon... "
	textChecking   = "Checking for IPAM connectivity... "
	textCopying    = "Copying config file... "
	textSuccessful = "Successfully copied CNI plugin binary and config file."
	textStopped    = "IPAMD stopped hence exiting ..."
)

// textInstalled is printed to stdout, once for each plugin.
func textInstalled(path string) string { return "Installed " + path + "\n" }

// Names in the working directory and on the node.
const (
	daemonProgram = "aws-k8s-agent"
	conflistName  = "10-aws.conflist"
)

// plugins returns the files that the entrypoint installs; the init container installs the
// others. The program that aws-cni starts comes before it.
func plugins() []string { return []string{"aws-cni-grpc", "aws-cni", "egress-cni"} }
