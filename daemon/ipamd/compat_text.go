package ipamd

// Texts that guides, support people and tools search for (spec/ipamd.md §1.3, §11).
// They are kept as the original prints them.
const (
	textStarting       = "Starting L-IPAMD"
	textInitFailure    = "Initialization failure"
	textInitDone       = "node init completed successfully"
	textNoENIs         = "ipamd init: failed to retrieve attached ENIs info"
	textHostNetwork    = "ipamd init: failed to set up host network"
	textValidation     = "ipamd: failed to validate configuration"
	textUnknownType    = "vpc ip resource(eni ip limit): unknown instance type %s"
	textNoAddress      = "DataStore has no available IP/Prefix addresses"
	textUnknownSandbox = "UnassignPodIPAddress: Failed to find sandbox"
	textSubnetShort    = "Unable to attach IPs/Prefixes for the ENI, subnet doesn't seem to have enough IPs/Prefixes. Consider using new subnet or carve a reserved range using create-subnet-cidr-reservation"
	textFreed          = "Successfully freed ENI: "
	textENISetUp       = "ENI %s set up."
	textStale          = "stale IP allocation for ID("
	textReconciled     = "Successfully Reconciled ENI/IP pool"
	textServing        = "Serving RPC Handler version"
)
