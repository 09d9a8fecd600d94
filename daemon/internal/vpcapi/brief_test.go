package vpcapi_test

import (
	"errors"
	"fmt"
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
