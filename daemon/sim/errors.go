package sim

import (
	"errors"
	"fmt"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/procedure"
)

// What EC2 answers, in the words of procedures, as vpcapi would say it.
var (
	errExhausted   = &procedure.Failure{Cause: cause.SubnetExhausted, Err: errors.New("InsufficientFreeAddressesInSubnet")}
	errFragmented  = &procedure.Failure{Cause: cause.SubnetFragmented, Err: errors.New("InsufficientCidrBlocks")}
	errThrottled   = &procedure.Failure{Cause: cause.EC2Throttled, Err: errors.New("RequestLimitExceeded")}
	errNoENI       = &procedure.Failure{Cause: cause.EC2Error, NotFound: true, Err: errors.New("InvalidNetworkInterfaceID.NotFound")}
	errNoAttach    = &procedure.Failure{Cause: cause.EC2Error, NotFound: true, Err: errors.New("InvalidAttachmentID.NotFound")}
	errAddressMax  = &procedure.Failure{Cause: cause.PoolFull, AddressLimit: true, Err: errors.New("PrivateIpAddressLimitExceeded")}
	errAttachMax   = &procedure.Failure{Cause: cause.ENIAttachLimit, Err: errors.New("AttachmentLimitExceeded")}
	errNoAnswer    = &procedure.Failure{Cause: cause.EC2Error, Unanswered: true, Err: errors.New("no answer within the time limit")}
	errBroken      = &procedure.Failure{Cause: cause.EC2Error, Unanswered: true, Err: errors.New("InternalError")}
	errUnable      = &procedure.Failure{Cause: cause.EC2Unauthorized, Err: errors.New("UnauthorizedOperation")}
	errLinkMissing = &procedure.Failure{Cause: cause.ENILinkMissing, Err: errors.New("no link with the MAC of the ENI appeared")}
)

var (
	errEnded    = errors.New("the task was asked to end")
	errKernel   = errors.New("netlink: interrupted system call")
	errMetadata = errors.New("instance metadata: 503 Service Unavailable")
	errDisk     = errors.New("no space left on device")
)

func refused(format string, args ...any) error {
	return &procedure.Failure{Cause: cause.EC2Error, Err: fmt.Errorf(format, args...)}
}
