package tour

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/cloudtrail"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/servicequotas"
)

// clients have a method for each operation of a service. Its input has a field for each option
// of the AWS CLI's command.
var clients = map[string]reflect.Type{
	"cloudtrail":     reflect.TypeFor[*cloudtrail.Client](),
	"ec2":            reflect.TypeFor[*ec2.Client](),
	"eks":            reflect.TypeFor[*eks.Client](),
	"iam":            reflect.TypeFor[*iam.Client](),
	"service-quotas": reflect.TypeFor[*servicequotas.Client](),
}

// others are the commands of services whose client is not worth a module, and of the CLI only, with their options, from the AWS CLI's
// reference.
var others = map[string][]string{
	"account enable-region":                                {"region-name"},
	"account get-region-opt-status":                        {"region-name"},
	"autoscaling describe-scaling-activities":              {"auto-scaling-group-name", "max-items"},
	"autoscaling terminate-instance-in-auto-scaling-group": {"instance-id", "should-decrement-desired-capacity"},
	"cloudformation describe-stack-events":                 {"stack-name"},
	"eks wait":                                             {"cluster-name", "addon-name"}, // addon-active
	"elbv2 describe-target-health":                         {"target-group-arn"},
	"health describe-events":                               {"filter"},
	"organizations list-policies":                          {"filter"},
	"sts decode-authorization-message":                     {"encoded-message"},
}

// ofCLI are options that the CLI adds to those of the service.
var ofCLI = map[string][]string{
	"":                                 {"query", "output"},
	"authorize-security-group-ingress": {"source-group", "protocol", "port"},
}

// unknown returns the operation or the options of an AWS CLI command that its service lacks.
func unknown(service, operation string, options []string) (out []string) {
	if known, ok := others[service+" "+operation]; ok {
		return slices.DeleteFunc(slices.Clone(options), func(o string) bool { return slices.Contains(ofCLI[""], o) || slices.Contains(known, o) })
	}
	client, ok := clients[service]
	if !ok {
		return []string{"client in this test"}
	}
	var input reflect.Type
	for method := range client.Methods() {
		if same(method.Name, operation) {
			input = method.Type.In(2).Elem()
		}
	}
	if input == nil {
		return []string{operation}
	}
	for _, o := range options {
		_, field := input.FieldByNameFunc(func(name string) bool { return same(name, o) })
		if !field && !slices.Contains(ofCLI[""], o) && !slices.Contains(ofCLI[operation], o) {
			out = append(out, operation+" --"+o)
		}
	}
	return out
}

// same reports whether a name in the SDK, such as AttachRolePolicy, and one in the CLI match.
func same(sdk, cli string) bool { return strings.EqualFold(sdk, strings.ReplaceAll(cli, "-", "")) }

// TestCommands_AWS: the AWS CLI commands on all pages, including those of the doctor, exist with
// these options. They cannot be run here.
func TestCommands_AWS(t *testing.T) {
	t.Parallel()
	checked := 0
	for _, page := range CommandPages(t) {
		text, err := os.ReadFile(Path(t, page))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile("(?:[`\n]|[;|] ) *aws ([a-z0-9-]+) ([a-z0-9-]+)((?: [^`\n|;]+)?)").FindAllStringSubmatch(string(text), -1) {
			var options []string
			for _, o := range regexp.MustCompile(` --([a-z0-9-]+)`).FindAllStringSubmatch(m[3], -1) {
				options = append(options, o[1])
			}
			for _, wrong := range unknown(m[1], m[2], options) {
				t.Errorf("%s: %s has no %s", page, m[1], wrong)
			}
			checked++
		}
	}
	if checked < 50 {
		t.Errorf("%d commands checked", checked)
	}
	if got, want := unknown("ec2", "describe-subnets", []string{"subnet-id", "subnet-ids", "query"}), []string{"describe-subnets --subnet-id"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := unknown("ec2", "describe-subnet", nil); len(got) != 1 {
		t.Errorf("describe-subnet: %q", got)
	}
}
