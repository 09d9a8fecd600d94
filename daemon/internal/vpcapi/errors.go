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

// The EC2 error codes that the daemon reacts to (EC2 API Reference, "Error codes").
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

	// messageExhausted, with codeInvalidValue, can also mean an exhausted subnet
	// (amazon-vpc-cni-k8s issue 3105). Nothing else identifies this error.
	messageExhausted = "There aren't sufficient free Ipv4 addresses or prefixes"
	// messageOtherZone is in EC2's message, with several codes, if an ENI and its instance
	// are in different availability zones. The case varies.
	messageOtherZone = "availability zone"
	// messageOtherNetwork is EC2's wording for a security group of another VPC.
	messageOtherNetwork = "belong to different networks"
)

func apiError(err error) smithy.APIError {
	var e smithy.APIError
	if errors.As(err, &e) {
		return e
	}
	return nil
}

// Code returns EC2's error code, "" if EC2 did not answer or err is nil.
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

// IsThrottled reports whether EC2's request limits refused the call, including its retries,
// or the budget held it back to avoid that.
func IsThrottled(err error) bool {
	var held *WaitError
	if errors.As(err, &held) {
		return true
	}
	_, ok := retry.DefaultThrottleErrorCodes[Code(err)]
	return ok
}

// IsSubnetExhausted reports whether the subnet has too few free addresses, for the creation
// of an ENI or an assignment.
func IsSubnetExhausted(err error) bool {
	return Code(err) == codeSubnetExhausted || says(err, codeInvalidValue, messageExhausted)
}

// IsFragmented reports whether the subnet has no free aligned /28, whatever its count of
// free addresses.
func IsFragmented(err error) bool { return Code(err) == codeFragmented }

// IsNotFound reports whether the ENI or attachment does not exist (any more).
func IsNotFound(err error) bool {
	switch Code(err) {
	case codeENINotFound, codeAttachmentNotFound:
		return true
	}
	return false
}

// IsNoSubnet reports whether the subnet does not exist: an ENIConfig names one that was
// deleted, or is in another region or account.
func IsNoSubnet(err error) bool {
	switch Code(err) {
	case codeSubnetNotFound, codeSubnetMalformed:
		return true
	}
	return false
}

// IsNoSecurityGroup reports whether a security group does not exist or is not in the ENI's
// VPC.
func IsNoSecurityGroup(err error) bool {
	switch Code(err) {
	case codeGroupNotFound, codeGroupIDNotFound, codeGroupMalformed:
		return true
	}
	return says(err, codeInvalidParameter, messageOtherNetwork) || says(err, codeInvalidValue, messageOtherNetwork)
}

// IsOtherZone reports whether an ENI cannot be attached because its subnet and the instance
// are in different availability zones: an ENIConfig names a subnet of another zone.
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

// IsUnanswered reports whether EC2 may have carried out the failed request: there was no
// answer, a malformed one, or a server error.
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

// refused reports whether the client itself refused and made no request.
func refused(err error) bool {
	var groups *GroupsError
	var ipv6Only *IPv6OnlyError
	return errors.As(err, &groups) || errors.As(err, &ipv6Only) && ipv6Only.Made == ""
}

// IsUnauthorized reports whether the role may not call the action.
func IsUnauthorized(err error) bool {
	switch Code(err) {
	case codeUnauthorized, codeAccessDenied, "AccessDeniedException":
		return true
	}
	return false
}

// IsAttachLimit reports whether the instance or its network card takes no more ENIs.
func IsAttachLimit(err error) bool {
	switch Code(err) {
	case codeAttachLimit, codeENILimit:
		return true
	}
	return false
}

// IsAddressLimit reports whether the ENI takes no more addresses or prefixes.
func IsAddressLimit(err error) bool {
	switch Code(err) {
	case codeAddressLimit, codeAddressLimit6:
		return true
	}
	return false
}

// Cause returns the cause of a failed call, as a code that daemon and plugin share; "" for
// nil.
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

// fail converts a failed call's error to a [keeper.Failure]. Every method of [keeper.EC2]
// defers it.
func fail(err *error) {
	if *err != nil {
		*err = &keeper.Failure{
			Cause: Cause(*err), NotFound: IsNotFound(*err), AddressLimit: IsAddressLimit(*err), Unanswered: IsUnanswered(*err), Err: Brief(*err),
		}
	}
}

var _ keeper.EC2 = &Client{}

// maxMessage bounds EC2's error messages, in bytes: they go into logs, events and answers.
// The longest real ones carry an encoded authorization message.
const maxMessage = 4 << 10

// clean removes from an error what must not be passed on: EC2 answers a wrong signature with
// the request that it expected, including the session token.
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
