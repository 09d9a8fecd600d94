package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/smithy-go"

	"cnictl/daemon/awssdk"
)

// asCommand makes the test binary act as the command.
const asCommand = "FAKEAWS_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
	}
	os.Exit(m.Run())
}

// program is the command in a separate process.
type program struct {
	t         *testing.T
	cmd       *exec.Cmd
	out       *bufio.Scanner
	stderr    bytes.Buffer
	endpoints struct{ EC2, IMDS, Control, Region, InstanceID string }
	env       map[string]string
}

func startProgram(t *testing.T, args ...string) *program {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &program{t: t, cmd: exec.CommandContext(t.Context(), self, args...), env: map[string]string{}}
	p.cmd.Env = append(os.Environ(), asCommand+"=1")
	p.cmd.Stderr = &p.stderr
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.out = bufio.NewScanner(stdout)
	if !p.out.Scan() {
		_ = p.cmd.Wait()
		t.Fatalf("no first line: %s", p.stderr.String())
	}
	if err := json.Unmarshal(p.out.Bytes(), &p.endpoints); err != nil {
		t.Fatalf("first line %q: %v", p.out.Text(), err)
	}
	for p.env["FAKEAWS_INSTANCE_ID"] == "" && p.out.Scan() {
		name, value, _ := strings.Cut(p.out.Text(), "=")
		p.env[name] = value
	}
	return p
}

// end sends a signal and expects a clean exit.
func (p *program) end(s os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
	for p.out.Scan() {
		// Drain the output.
	}
	if err := p.cmd.Wait(); err != nil || p.stderr.Len() > 0 {
		p.t.Errorf("after %v: %v: %s", s, err, p.stderr.String())
	}
}

// control sends a request to the control API and decodes its answer.
func (p *program) control(method, path, body string, into any) int {
	p.t.Helper()
	r, err := http.NewRequestWithContext(p.t.Context(), method, p.endpoints.Control+path, strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	if into != nil {
		if err := json.Unmarshal(b, into); err != nil {
			p.t.Fatalf("%s %s: %v: %s", method, path, err, b)
		}
	}
	return resp.StatusCode
}

type worldSeen struct {
	Subnets []struct {
		ID   string
		Free int
	}
	ENIs []struct {
		ID         string
		Attachment *struct{ Status string }
	}
}

// TestCommand: a program that only knows its environment is served, and the control API breaks
// and restores what the program sees.
func TestCommand(t *testing.T) {
	p := startProgram(t, "--throttle", "none")
	for name, want := range map[string]string{
		"AWS_ENDPOINT_URL_EC2": p.endpoints.EC2, "AWS_EC2_METADATA_SERVICE_ENDPOINT": p.endpoints.IMDS,
		"FAKEAWS_CONTROL": p.endpoints.Control, "AWS_REGION": p.endpoints.Region, "FAKEAWS_INSTANCE_ID": p.endpoints.InstanceID,
	} {
		if want == "" || p.env[name] != want {
			t.Errorf("%s=%q, the first line says %q", name, p.env[name], want)
		}
	}
	for name, value := range p.env {
		t.Setenv(name, value)
	}
	conf, err := awssdk.Load(t.Context(), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	client := ec2.NewFromConfig(conf)
	where, err := imds.NewFromConfig(conf).GetInstanceIdentityDocument(t.Context(), nil)
	if err != nil || where.InstanceID != p.endpoints.InstanceID || where.Region != p.endpoints.Region {
		t.Fatalf("identity %+v (%v)", where, err)
	}

	var before worldSeen
	p.control("GET", "/world", "", &before)
	subnet := before.Subnets[0].ID
	var added struct{ ID string }
	if status := p.control("POST", "/faults", `{"action":"CreateNetworkInterface","last":3,"effect":true,"code":"InternalError"}`, &added); status != 200 || added.ID == "" {
		t.Fatalf("add fault: %d %+v", status, added)
	}
	create := func() error {
		_, err := client.CreateNetworkInterface(t.Context(), &ec2.CreateNetworkInterfaceInput{SubnetId: aws.String(subnet)})
		return err
	}
	err = create()
	var refused smithy.APIError
	if !errors.As(err, &refused) || refused.ErrorCode() != "InternalError" {
		t.Errorf("create with a fault: %v", err)
	}
	var after worldSeen
	p.control("GET", "/world", "", &after)
	if got := len(after.ENIs) - len(before.ENIs); got != 1 {
		t.Errorf("three attempts with one token made %d ENIs, want 1", got)
	}
	if status := p.control("DELETE", "/faults/"+added.ID, "", nil); status != 200 {
		t.Errorf("remove fault: %d", status)
	}
	if err := create(); err != nil {
		t.Errorf("create without a fault: %v", err)
	}
	var log struct {
		Next  int
		Calls []struct{ Action, Code, Fault string }
	}
	p.control("GET", "/calls?from=1", "", &log)
	if log.Next != 4 || len(log.Calls) != 3 || log.Calls[0].Fault != "InternalError, after effect" || log.Calls[2].Fault != "" {
		t.Errorf("call log from 1: %+v", log)
	}

	var taken struct{ Taken int }
	if p.control("POST", "/subnets/"+subnet+"/occupy", `{"count":1000}`, &taken); taken.Taken == 0 {
		t.Error("nothing was occupied")
	}
	if err := create(); err == nil {
		t.Error("a full subnet gave an address")
	}
	if status := p.control("PATCH", "/settings", `{"metadataLag":"soon"}`, nil); status != 400 {
		t.Errorf("a lag of soon: %d", status)
	}
	if status := p.control("PATCH", "/settings", `{"throttle":"account","metadataLag":"10s"}`, nil); status != 200 {
		t.Errorf("request limits: %d", status)
	}
	if status := p.control("POST", "/subnets/subnet-0/vacate", "", nil); status != 409 {
		t.Errorf("a subnet that does not exist: %d", status)
	}
	p.end(syscall.SIGTERM)
}
