package sim

import (
	"errors"
	"fmt"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/keeper"
)

// EC2's errors as vpcapi would return them to procedures.
var (
	errExhausted   = &keeper.Failure{Cause: cause.SubnetExhausted, Err: errors.New("InsufficientFreeAddressesInSubnet")}
	errFragmented  = &keeper.Failure{Cause: cause.SubnetFragmented, Err: errors.New("InsufficientCidrBlocks")}
	errThrottled   = &keeper.Failure{Cause: cause.EC2Throttled, Err: errors.New("RequestLimitExceeded")}
	errNoENI       = &keeper.Failure{Cause: cause.EC2Error, NotFound: true, Err: errors.New("InvalidNetworkInterfaceID.NotFound")}
	errNoAttach    = &keeper.Failure{Cause: cause.EC2Error, NotFound: true, Err: errors.New("InvalidAttachmentID.NotFound")}
	errAddressMax  = &keeper.Failure{Cause: cause.PoolFull, AddressLimit: true, Err: errors.New("PrivateIpAddressLimitExceeded")}
	errAttachMax   = &keeper.Failure{Cause: cause.ENIAttachLimit, Err: errors.New("AttachmentLimitExceeded")}
	errNoAnswer    = &keeper.Failure{Cause: cause.EC2Error, Unanswered: true, Err: errors.New("no answer within the time limit")}
	errBroken      = &keeper.Failure{Cause: cause.EC2Error, Unanswered: true, Err: errors.New("InternalError")}
	errUnable      = &keeper.Failure{Cause: cause.EC2Unauthorized, Err: errors.New("UnauthorizedOperation")}
	errLinkMissing = &keeper.Failure{Cause: cause.ENILinkMissing, Err: errors.New("no link with the MAC of the ENI appeared")}
)

var (
	errEnded    = errors.New("the task was asked to end")
	errKernel   = errors.New("netlink: interrupted system call")
	errMetadata = errors.New("instance metadata: 503 Service Unavailable")
	errDisk     = errors.New("no space left on device")
)

func refused(format string, args ...any) error {
	return &keeper.Failure{Cause: cause.EC2Error, Err: fmt.Errorf(format, args...)}
}
