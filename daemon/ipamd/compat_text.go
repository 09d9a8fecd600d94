package ipamd

import "cnictl/daemon/api/logline"

// Texts that guides, support people and tools search for (spec/ipamd.md §1.3, §11).
// They are kept as the original prints them.
const (
	textStarting       = logline.TextStarting
	textInitFailure    = "Initialization failure"
	textInitDone       = logline.TextInitDone
	textNoENIs         = "ipamd init: failed to retrieve attached ENIs info"
	textHostNetwork    = "ipamd init: failed to set up host network"
	textValidation     = "ipamd: failed to validate configuration"
	textUnknownType    = "vpc ip resource(eni ip limit): unknown instance type %s"
	textNoAddress      = logline.TextNoAddress
	textUnknownSandbox = logline.TextUnknownSandbox
	textSubnetShort    = logline.TextSubnetShort + ". Consider using new subnet or carve a reserved range using create-subnet-cidr-reservation"
	textFreed          = logline.TextFreed + ": "
	textENISetUp       = "ENI %s set up."
	textStale          = logline.TextStale
	textReconciled     = "Successfully Reconciled ENI/IP pool"
	textServing        = logline.TextServing
)
