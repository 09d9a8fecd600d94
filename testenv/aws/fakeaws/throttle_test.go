package fakeaws_test

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/ec2"

	"cnictl/daemon/awssdk"
	"cnictl/testenv/aws/ec2model"
	"cnictl/testenv/aws/fakeaws"
)

// burst makes calls until one is throttled and returns how many worked, at most 200.
func (b *bench) burst(call func() error) (worked int) {
	b.t.Helper()
	for worked < 200 {
		switch err := call(); answerOf(err) {
		case "RequestLimitExceeded":
			return worked
		case "", "InvalidNetworkInterfaceID.NotFound":
			worked++ // a refused call costs a token too
		default:
			b.t.Fatal(err)
		}
	}
	return worked
}

// An action has one bucket, shared by all callers in the account; a world in another region
// has separate buckets.
func TestThrottle_Scope(t *testing.T) {
	t.Parallel()
	clock := func() time.Time { return time.Unix(1_800_000_000, 0) }
	few := &fakeaws.Throttle{Describe: ec2model.Limit{Size: 3, PerSecond: 1}, Unfiltered: ec2model.Limit{Size: 2, PerSecond: 1}, Mutating: ec2model.Limit{Size: 1, PerSecond: 1},
		Actions: map[string]ec2model.Limit{"DescribeSecurityGroups": {Size: 5, PerSecond: 1}}}
	b := newBench(t, fakeaws.Options{Throttle: few, Now: clock})
	other := ec2.New(ec2.Options{APIOptions: awssdk.APIOptions(), Region: b.Region(), BaseEndpoint: aws.String(b.server.EC2URL), RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider("AKIA2", "secret", "")})
	both := 0
	by := []*ec2.Client{b.ec2, other}
	n := b.burst(func() error {
		both++
		_, err := by[both%2].DescribeSubnets(t.Context(), &ec2.DescribeSubnetsInput{SubnetIds: []string{b.subnet.ID}})
		return err
	})
	if n != 3 {
		t.Errorf("two clients made %d calls, want the bucket's 3 together", n)
	}
	if n := b.burst(func() error {
		_, err := b.ec2.DescribeInstances(t.Context(), &ec2.DescribeInstancesInput{InstanceIds: []string{b.instance.ID}})
		return err
	}); n != 3 {
		t.Errorf("another action made %d calls, want 3 of its own", n)
	}
	if n := b.burst(func() error { _, err := b.ec2.DescribeSecurityGroups(t.Context(), nil); return err }); n != 5 {
		t.Errorf("an action with figures of its own made %d calls, want 5", n)
	}
	elsewhere := newBench(t, fakeaws.Options{Region: "eu-central-1", Throttle: few, Now: clock})
	if n := elsewhere.burst(func() error { _, err := elsewhere.ec2.DescribeSubnets(t.Context(), nil); return err }); n != 2 {
		t.Errorf("another region made %d calls, want 2", n)
	}
}
