package vpcapi_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/smithy-go"

	"cnictl/daemon/internal/vpcapi"
)

func TestBrief(t *testing.T) {
	t.Parallel()
	op := func(code, message string) error {
		return fmt.Errorf("create ENI in subnet-1: %w", &smithy.OperationError{
			ServiceID: "EC2", OperationName: "CreateNetworkInterface", Err: &smithy.GenericAPIError{Code: code, Message: message},
		})
	}
	plain := errors.New("connection refused")
	for _, row := range []struct {
		err  error
		want string
	}{
		{op("RequestLimitExceeded", "Request limit exceeded."), "RequestLimitExceeded: Request limit exceeded. (ec2:CreateNetworkInterface)"},
		{op("UnauthorizedOperation", "No."), "UnauthorizedOperation: No.; the node's IAM role needs ec2:CreateNetworkInterface (ec2:CreateNetworkInterface)"},
		{op("UnauthorizedOperation", "User: me is not authorized to perform: ec2:CreateTags on resource: x"),
			"UnauthorizedOperation: User: me is not authorized to perform: ec2:CreateTags on resource: x; the node's IAM role needs ec2:CreateTags (ec2:CreateNetworkInterface)"},
		{op("InternalError", ""), "InternalError (ec2:CreateNetworkInterface)"},
		{plain, "connection refused"},
	} {
		got := vpcapi.Brief(row.err)
		if got.Error() != row.want {
			t.Errorf("%s\nwant %s", got, row.want)
		}
		if !errors.Is(got, row.err) || vpcapi.Cause(got) != vpcapi.Cause(row.err) {
			t.Errorf("%v is not the error any more", got)
		}
	}
	if vpcapi.Brief(nil) != nil {
		t.Error("nil became an error")
	}
}

func TestMissingAction(t *testing.T) {
	t.Parallel()
	api := func(code, message string) error { return &smithy.GenericAPIError{Code: code, Message: message} }
	called := func(err error) error {
		return &smithy.OperationError{ServiceID: "EC2", OperationName: "AttachNetworkInterface", Err: err}
	}
	for _, row := range []struct {
		err  error
		want string
	}{
		{called(api("UnauthorizedOperation", "No.")), "ec2:AttachNetworkInterface"},
		{called(api("UnauthorizedOperation", "User: me is not authorized to perform: ec2:CreateTags because")), "ec2:CreateTags"},
		{called(api("UnauthorizedOperation", "User: me is not authorized to perform: s3:GetObject")), "ec2:AttachNetworkInterface"},
		{called(api("UnauthorizedOperation", "is not authorized to perform: ec2:"+strings.Repeat("A", 5000))), "ec2:AttachNetworkInterface"},
		{called(api("InternalError", "is not authorized to perform: ec2:CreateTags")), ""},
		{api("UnauthorizedOperation", "No."), ""},
		{errors.New("connection refused"), ""},
		{nil, ""},
	} {
		if got := vpcapi.MissingAction(row.err); got != row.want {
			t.Errorf("MissingAction(%v) = %q, want %q", row.err, got, row.want)
		}
	}
}
