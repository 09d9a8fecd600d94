package vpcapi

import (
	"errors"
	"regexp"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go"
)

// Brief puts EC2's error into the order that people read: code, message, then the action and
// the request id. The SDK uses the reverse order, so a truncated text would lose the code.
// errors.As still finds the original error.
func Brief(err error) error {
	var held *WaitError
	if errors.As(err, &held) {
		return &briefError{text: held.Error(), err: err}
	}
	api := apiError(err)
	if err == nil || api == nil {
		return err
	}
	b := &briefError{text: api.ErrorCode(), err: err}
	if m := api.ErrorMessage(); m != "" {
		b.text += ": " + m
	}
	about := ""
	var op *smithy.OperationError
	if errors.As(err, &op) {
		about = "ec2:" + op.Operation()
		if IsUnauthorized(err) {
			b.text += "; the node's IAM role needs " + MissingAction(err)
		}
	}
	var response *awshttp.ResponseError
	if errors.As(err, &response) && response.RequestID != "" {
		if about != "" {
			about += ", "
		}
		about += "request " + response.RequestID
	}
	if about != "" {
		b.text += " (" + about + ")"
	}
	return b
}

// refusedAction matches the action in EC2's message that the role may not call.
var refusedAction = regexp.MustCompile(`is not authorized to perform: (ec2:[A-Za-z0-9]{1,64})\b`)

// MissingAction returns the permission that the role lacks, as IAM spells it, or "" if it is
// unknown or err is not about permissions. It can differ from the called action: creating
// an ENI with tags also needs ec2:CreateTags.
func MissingAction(err error) string {
	if !IsUnauthorized(err) {
		return ""
	}
	if found := refusedAction.FindStringSubmatch(apiError(err).ErrorMessage()); found != nil {
		return found[1]
	}
	var op *smithy.OperationError
	if errors.As(err, &op) {
		return "ec2:" + op.Operation()
	}
	return ""
}

type briefError struct {
	text string
	err  error
}

func (e *briefError) Error() string { return e.text }
func (e *briefError) Unwrap() error { return e.err }
