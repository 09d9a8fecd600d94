package vpcapi

import (
	"errors"
	"regexp"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go"
)

// Brief says what EC2 answered in the order that people read: code, message, then what
// was called and the request's id. The SDK says it the other way round, and where a text
// is cut the code would be lost. The error stays what it is for errors.As.
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

// refusedAction is how EC2 names what the role may not do.
var refusedAction = regexp.MustCompile(`is not authorized to perform: (ec2:[A-Za-z0-9]{1,64})\b`)

// MissingAction is the permission that the role lacks, as IAM spells it; "" if that is
// not what failed or is not known. It need not be the action that was called: making
// an ENI with tags takes ec2:CreateTags too.
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
