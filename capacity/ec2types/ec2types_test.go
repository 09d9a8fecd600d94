package ec2types_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/google/go-cmp/cmp"

	"cnictl/capacity/ec2types"
	"cnictl/capacity/limits"
	"cnictl/daemon/awssdk"
	"cnictl/testenv/aws/fakeaws"
)

func client(t *testing.T, o fakeaws.Options) *ec2.Client {
	t.Helper()
	w := fakeaws.NewWorld(o)
	s, err := fakeaws.NewServer(w, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		w.Close()
		for _, v := range w.Violations() {
			t.Errorf("violation: %s", v)
		}
	})
	return ec2.New(ec2.Options{APIOptions: awssdk.APIOptions(), Region: "us-west-2", BaseEndpoint: &s.EC2URL,
		Credentials: credentials.NewStaticCredentialsProvider("AKIA", "secret", "")})
}

// TestAll reads every type, in pages, and compares them with the built-in table.
func TestAll(t *testing.T) {
	t.Parallel()
	var pages []int
	got, refused, err := ec2types.All(t.Context(), client(t, fakeaws.Options{HideTypes: []string{"a1.large"}}).DescribeInstanceTypes, func(n int) { pages = append(pages, n) })
	if err != nil || len(refused) > 0 {
		t.Fatal(err, refused)
	}
	if len(got) != 1441 || len(pages) != 15 || pages[0] != 100 || pages[14] != 1441 {
		t.Errorf("%d types in pages up to %v", len(got), pages)
	}
	for _, i := range got {
		want, _ := limits.Lookup(i.Type)
		want.TrunkingCompatible, want.BranchENIs, want.PublishedMaxENIs = limits.Unknown, 0, 0 // EC2 does not report these
		if want.IPv6PerENI < 0 {
			want.IPv6PerENI = i.IPv6PerENI // the simulated EC2 knows it
		}
		if diff := cmp.Diff(want, i); diff != "" {
			t.Errorf("%s (-table +EC2):\n%s", i.Type, diff)
		}
	}
}

// TestAll_Interrupted keeps the pages before the interrupt.
func TestAll_Interrupted(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	got, _, err := ec2types.All(ctx, client(t, fakeaws.Options{}).DescribeInstanceTypes, func(n int) {
		if n == 300 {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) || len(got) != 300 {
		t.Errorf("%d types, %v", len(got), err)
	}
}

// TestAll_Answers: undocumented answers of EC2 end in an error, or the type is omitted.
func TestAll_Answers(t *testing.T) {
	t.Parallel()
	endless := func(_ context.Context, in *ec2.DescribeInstanceTypesInput, _ ...func(*ec2.Options)) (*ec2.DescribeInstanceTypesOutput, error) {
		return &ec2.DescribeInstanceTypesOutput{NextToken: aws.String("again")}, nil
	}
	if _, _, err := ec2types.All(t.Context(), endless, func(int) {}); err == nil || !strings.Contains(err.Error(), "more than 100 pages") {
		t.Errorf("endless pages: %v", err)
	}
	card := func(index, enis int32) types.NetworkCardInfo {
		return types.NetworkCardInfo{NetworkCardIndex: &index, MaximumNetworkInterfaces: &enis}
	}
	info := func(name string, ipv4 int32, cards ...types.NetworkCardInfo) types.InstanceTypeInfo {
		return types.InstanceTypeInfo{InstanceType: types.InstanceType(name), NetworkInfo: &types.NetworkInfo{Ipv4AddressesPerInterface: &ipv4, NetworkCards: cards}}
	}
	oddInfo := info("z9.odd", 10, card(0, 3)) // with an unknown hypervisor, vCPUs and memory
	oddInfo.Hypervisor, oddInfo.VCpuInfo, oddInfo.MemoryInfo = "photon", &types.VCpuInfo{DefaultVCpus: aws.Int32(1 << 30)}, &types.MemoryInfo{SizeInMiB: aws.Int64(-1)}
	odd := func(context.Context, *ec2.DescribeInstanceTypesInput, ...func(*ec2.Options)) (*ec2.DescribeInstanceTypesOutput, error) {
		return &ec2.DescribeInstanceTypesOutput{InstanceTypes: []types.InstanceTypeInfo{
			info("z9.large", 10, card(1, 7), card(0, 8)), {}, {InstanceType: "z9.none"}, info("\x1b[2J", 10, card(0, 3)), info("z9.no-card", 10), info("z9.other-card", 10, card(1, 3)),
			info("z9.twice", 10, card(0, 3), card(0, 3)), info("z9.many", 10, card(0, 100_000)), info("z9.minus", -1, card(0, 3)), info("z9.zero", 10, card(0, 0)),
			oddInfo,
		}}, nil
	}
	got, refused, err := ec2types.All(t.Context(), odd, func(int) {})
	want := []limits.Instance{
		{Type: "z9.large", MaxENIs: 8, IPv4PerENI: 10, IPv6PerENI: -1, Cards: []limits.Card{{Index: 0, MaxENIs: 8}, {Index: 1, MaxENIs: 7}}},
		{Type: "z9.odd", MaxENIs: 3, IPv4PerENI: 10, IPv6PerENI: -1, Cards: []limits.Card{{Index: 0, MaxENIs: 3}}},
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" || len(refused) != 9 {
		t.Errorf("%v, %d refused: %v\n%s", err, len(refused), refused, diff)
	}
	if slices.ContainsFunc(refused, func(err error) bool { return strings.Contains(err.Error(), "\x1b") }) {
		t.Errorf("an error with control characters: %q", refused)
	}
}
