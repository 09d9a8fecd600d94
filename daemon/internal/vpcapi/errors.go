package vpcapi

import (
	"errors"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/smithy-go"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/keeper"
	"cnictl/daemon/scrub"
)

// The EC2 error codes that the daemon reacts to (spec/ipamd.md §4.4, §4.8, §10.1).
const (
	codeENINotFound        = "InvalidNetworkInterfaceID.NotFound"
	codeAttachmentNotFound = "InvalidAttachmentID.NotFound"
	codeSubnetExhausted    = "InsufficientFreeAddressesInSubnet"
	codeFragmented         = "InsufficientCidrBlocks"
	codeInvalidValue       = "InvalidParameterValue"
	codeAddressLimit       = "PrivateIpAddressLimitExceeded"
	codeAddressLimit6      = "Ipv6AddressLimitExceeded"
	codeAttachLimit        = "AttachmentLimitExceeded"
	codeENILimit           = "NetworkInterfaceLimitExceeded"
	codeSubnetNotFound     = "InvalidSubnetID.NotFound"
	codeSubnetMalformed    = "InvalidSubnetID.Malformed"
	codeSubnetConflict     = "InvalidSubnet.Conflict"
	codeGroupNotFound      = "InvalidGroup.NotFound"
	codeGroupIDNotFound    = "InvalidSecurityGroupID.NotFound"
	codeGroupMalformed     = "InvalidGroupId.Malformed"
	codeInvalidParameter   = "InvalidParameter"
	codeInvalidCombination = "InvalidParameterCombination"
	codeUnauthorized       = "UnauthorizedOperation"
	codeAccessDenied       = "AccessDenied"

	// messageExhausted is what an exhausted subnet can also look like, under
	// codeInvalidValue (amazon-vpc-cni-k8s issue 3105): there is no other mark.
	messageExhausted = "There aren't sufficient free Ipv4 addresses or prefixes"
	// messageOtherZone is in what EC2 says, under several codes, when an ENI and its
	// instance are in different availability zones; its words vary in case.
	messageOtherZone = "availability zone"
	// messageOtherNetwork is how EC2 calls a security group of another VPC.
	messageOtherNetwork = "belong to different networks"
)

func apiError(err error) smithy.APIError {
	var e smithy.APIError
	if errors.As(err, &e) {
		return e
	}
	return nil
}

// Code is EC2's error code, "" when EC2 did not answer (or err is nil).
func Code(err error) string {
	if e := apiError(err); e != nil {
		return e.ErrorCode()
	}
	return ""
}

func says(err error, code, message string) bool {
	e := apiError(err)
	return e != nil && e.ErrorCode() == code && strings.Contains(e.ErrorMessage(), message)
}

// IsThrottled reports that EC2's request limits refused the call, retries included, or
// that it was held back because they would have.
func IsThrottled(err error) bool {
	var held *WaitError
	if errors.As(err, &held) {
		return true
	}
	_, ok := retry.DefaultThrottleErrorCodes[Code(err)]
	return ok
}

// IsSubnetExhausted reports that the subnet has not as many free addresses, whether
// they were asked for at an ENI's creation or later.
func IsSubnetExhausted(err error) bool {
	return Code(err) == codeSubnetExhausted || says(err, codeInvalidValue, messageExhausted)
}

// IsFragmented reports that the subnet has no free aligned /28, whatever its free
// count says.
func IsFragmented(err error) bool { return Code(err) == codeFragmented }

// IsNotFound reports that the ENI or attachment does not exist (any more).
func IsNotFound(err error) bool {
	switch Code(err) {
	case codeENINotFound, codeAttachmentNotFound:
		return true
	}
	return false
}

// IsNoSubnet reports that there is no such subnet: an ENIConfig names one that was
// deleted, or of another region or account.
func IsNoSubnet(err error) bool {
	switch Code(err) {
	case codeSubnetNotFound, codeSubnetMalformed:
		return true
	}
	return false
}

// IsNoSecurityGroup reports that a security group does not exist or is not one of the
// ENI's VPC.
func IsNoSecurityGroup(err error) bool {
	switch Code(err) {
	case codeGroupNotFound, codeGroupIDNotFound, codeGroupMalformed:
		return true
	}
	return says(err, codeInvalidParameter, messageOtherNetwork) || says(err, codeInvalidValue, messageOtherNetwork)
}

// IsOtherZone reports that an ENI cannot be attached because its subnet is in another
// availability zone than the instance: an ENIConfig names a subnet of another zone.
func IsOtherZone(err error) bool {
	e := apiError(err)
	if e == nil || !strings.Contains(strings.ToLower(e.ErrorMessage()), messageOtherZone) {
		return false
	}
	switch e.ErrorCode() {
	case codeInvalidCombination, codeInvalidValue, codeInvalidParameter, codeSubnetConflict:
		return true
	}
	return false
}

// IsUnanswered reports that EC2 may have done what it was asked for: no answer came,
// one that makes no sense, or one that says only that something broke.
func IsUnanswered(err error) bool {
	if err == nil {
		return false
	}
	var held *WaitError
	if errors.As(err, &held) {
		return held.Lost
	}
	if refused(err) {
		return false
	}
	e := apiError(err)
	if e == nil {
		return true
	}
	switch e.ErrorCode() {
	case "InternalError", "InternalFailure", "ServerInternal", "Unavailable", "ServiceUnavailable", "RequestTimeout", "RequestTimeoutException":
		return true
	}
	return e.ErrorFault() == smithy.FaultServer && !IsThrottled(err)
}

// refused reports that the client made no request at all.
func refused(err error) bool {
	var groups *GroupsError
	var ipv6Only *IPv6OnlyError
	return errors.As(err, &groups) || errors.As(err, &ipv6Only) && ipv6Only.Made == ""
}

// IsUnauthorized reports that the role may not call the action.
func IsUnauthorized(err error) bool {
	switch Code(err) {
	case codeUnauthorized, codeAccessDenied, "AccessDeniedException":
		return true
	}
	return false
}

// IsAttachLimit reports that the instance or its network card takes no further ENI.
func IsAttachLimit(err error) bool {
	switch Code(err) {
	case codeAttachLimit, codeENILimit:
		return true
	}
	return false
}

// IsAddressLimit reports that the ENI takes no further address or prefix.
func IsAddressLimit(err error) bool {
	switch Code(err) {
	case codeAddressLimit, codeAddressLimit6:
		return true
	}
	return false
}

// Cause says why the call failed in the words that daemon and plugin share; "" for nil.
func Cause(err error) cause.Code {
	switch {
	case err == nil:
		return ""
	case IsThrottled(err):
		return cause.EC2Throttled
	case IsUnauthorized(err):
		return cause.EC2Unauthorized
	case IsSubnetExhausted(err):
		return cause.SubnetExhausted
	case IsFragmented(err):
		return cause.SubnetFragmented
	case IsAttachLimit(err):
		return cause.ENIAttachLimit
	case IsAddressLimit(err):
		return cause.PoolFull
	}
	var ipv6Only *IPv6OnlyError
	if errors.As(err, &ipv6Only) {
		return cause.NoUsableSubnet
	}
	return cause.EC2Error
}

// fail puts a failed call into the words of procedures. It is what every call of
// [keeper.EC2] ends with.
func fail(err *error) {
	if *err != nil {
		*err = &keeper.Failure{
			Cause: Cause(*err), NotFound: IsNotFound(*err), AddressLimit: IsAddressLimit(*err), Unanswered: IsUnanswered(*err), Err: Brief(*err),
		}
	}
}

var _ keeper.EC2 = &Client{}

// maxMessage bounds what EC2 says about an error, in bytes: it goes into logs, events and
// answers. The longest real ones carry an encoded authorization message.
const maxMessage = 4 << 10

// clean removes from an answer what must not be passed on: to a wrong signature EC2 answers
// with the request that it expected, the session's token among it.
func clean(err error) {
	var api *smithy.GenericAPIError
	if !errors.As(err, &api) {
		return
	}
	if len(api.Message) > maxMessage {
		api.Message = strings.ToValidUTF8(api.Message[:maxMessage], "") + "…"
	}
	api.Message = scrub.Line(api.Message)
}
