package fakeaws

import (
	"fmt"
	"net/http"
	"strings"
)

// Error is an error answer from EC2.
type Error struct {
	Code    string
	Message string
	Status  int // HTTP status; 0 for EC2's default for the code
}

func (e *Error) Error() string { return e.Code + ": " + e.Message }

func (e *Error) status() int {
	if e.Status != 0 {
		return e.Status
	}
	switch e.Code {
	case codeThrottled, "Unavailable", "ServiceUnavailable":
		return http.StatusServiceUnavailable
	case "InternalError", "InternalFailure":
		return http.StatusInternalServerError
	case codeUnauthorized:
		return http.StatusForbidden
	case codeAuthFailure:
		return http.StatusUnauthorized
	case codeDryRun:
		return http.StatusPreconditionFailed
	}
	return http.StatusBadRequest
}

// EC2's error codes.
const (
	codeThrottled          = "RequestLimitExceeded"
	codeUnauthorized       = "UnauthorizedOperation"
	codeAuthFailure        = "AuthFailure"
	codeDryRun             = "DryRunOperation"
	codeInvalidAction      = "InvalidAction"
	codeUnknownParameter   = "UnknownParameter"
	codeMissingParameter   = "MissingParameter"
	codeInvalidValue       = "InvalidParameterValue"
	codeInvalidCombination = "InvalidParameterCombination"
	codeENINotFound        = "InvalidNetworkInterfaceID.NotFound"
	codeENIInUse           = "InvalidNetworkInterface.InUse"
	codeAttachmentNotFound = "InvalidAttachmentID.NotFound"
	codeInstanceNotFound   = "InvalidInstanceID.NotFound"
	codeSubnetNotFound     = "InvalidSubnetID.NotFound"
	codeGroupNotFound      = "InvalidGroup.NotFound"
	codeTypeNotFound       = "InvalidInstanceType"
	codeResourceNotFound   = "InvalidID"
	codeAttachLimit        = "AttachmentLimitExceeded"
	codeAddressLimit       = "PrivateIpAddressLimitExceeded"
	codeSubnetExhausted    = "InsufficientFreeAddressesInSubnet"
	codeFragmented         = "InsufficientCidrBlocks"
	codeNotPermitted       = "OperationNotPermitted"
	codeIncorrectState     = "IncorrectState"
	codeUnsupported        = "UnsupportedOperation"
	codeInvalidToken       = "InvalidNextToken"
	codeTagLimit           = "TagLimitExceeded"
)

func fail(code, format string, args ...any) error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

func noENI(ids ...string) error {
	if len(ids) == 1 {
		return fail(codeENINotFound, "The networkInterface ID '%s' does not exist", ids[0])
	}
	return fail(codeENINotFound, "The networkInterface IDs '%s' do not exist", strings.Join(ids, ", "))
}

func noInstance(id string) error {
	return fail(codeInstanceNotFound, "The instance ID '%s' does not exist", id)
}

func noSubnet(id string) error {
	return fail(codeSubnetNotFound, "The subnet ID '%s' does not exist", id)
}

func noGroup(id string) error {
	return fail(codeGroupNotFound, "The security group '%s' does not exist", id)
}

func noAttachment(id string) error {
	return fail(codeAttachmentNotFound, "The attachment ID '%s' does not exist", id)
}
