package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
	"github.com/aws/aws-sdk-go-v2/service/ec2"

	"cnictl/daemon/awssdk"
)

// TestFakeAWS: a program that only knows its environment is served, the control API breaks and
// restores what the program sees, and a client's unknown action fails the command.
func TestFakeAWS(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	r, w := io.Pipe()
	var stderr bytes.Buffer
	code := make(chan int, 1)
	go func() {
		code <- program.Run(ctx, []string{"--throttle", "account", "--control", "127.0.0.1:0"}, w, &stderr)
		w.Close()
	}()
	out, env := bufio.NewScanner(r), map[string]string{}
	var at struct{ EC2, IMDS, Control, Region, InstanceID string }
	if !out.Scan() || json.Unmarshal(out.Bytes(), &at) != nil {
		t.Fatalf("first line %q", out.Text())
	}
	for env["FAKEAWS_INSTANCE_ID"] == "" && out.Scan() {
		name, value, _ := strings.Cut(out.Text(), "=")
		env[name] = value
		t.Setenv(name, value)
	}
	if env["AWS_ENDPOINT_URL_EC2"] != at.EC2 || env["AWS_REGION"] != at.Region || env["FAKEAWS_CONTROL"] != at.Control {
		t.Errorf("the first line says %+v, then %v", at, env)
	}
	control := func(method, path, body string, into any) int {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, at.Control+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if err := json.NewDecoder(resp.Body).Decode(into); err != nil {
			t.Fatalf("%s %s: %v", method, path, err)
		}
		return resp.StatusCode
	}
	conf, err := awssdk.Load(t.Context(), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	where, err := imds.NewFromConfig(conf).GetInstanceIdentityDocument(t.Context(), nil)
	if err != nil || where.InstanceID != at.InstanceID {
		t.Fatalf("identity %+v (%v)", where, err)
	}
	var world struct{ Subnets, ENIs []struct{ ID string } }
	control("GET", "/world", "", &world)
	client := ec2.NewFromConfig(conf)
	create := func() error {
		_, err := client.CreateNetworkInterface(t.Context(), &ec2.CreateNetworkInterfaceInput{SubnetId: aws.String(world.Subnets[0].ID)})
		return err
	}
	var added, refused, none struct{ ID, Error string }
	if status := control("POST", "/faults", `{"action":"CreateNetworkInterface","last":3,"effect":true,"code":"InternalError"}`, &added); status != 200 || added.ID == "" {
		t.Fatalf("add fault: %d %+v", status, added)
	}
	if status := control("POST", "/faults", `{"action":"DescribeVpcs","lunch":true}`, &refused); status != 400 || !strings.Contains(refused.Error, "lunch") {
		t.Errorf("a fault of unknown form: %d %+v", status, refused)
	}
	if err := create(); err == nil || !strings.Contains(err.Error(), "InternalError") {
		t.Errorf("create with a fault: %v", err)
	}
	control("DELETE", "/faults", "", &none)
	if err := create(); err != nil {
		t.Errorf("create without a fault: %v", err)
	}
	var log struct {
		Calls []struct{ Action, Fault string }
	}
	control("GET", "/calls", "", &log)
	if len(log.Calls) != 4 || log.Calls[0].Fault != "InternalError, after effect" || log.Calls[3].Fault != "" {
		t.Errorf("calls %+v", log)
	}
	if status := control("PATCH", "/settings", `{"metadataLag":"soon"}`, &refused); status != 400 {
		t.Errorf("a lag of soon: %d", status)
	}
	if status := control("PATCH", "/settings", `{"throttle":"none","metadataLag":"10s"}`, &none); status != 200 {
		t.Errorf("settings: %d", status)
	}
	if _, err := client.DescribeVpcs(t.Context(), nil); err == nil {
		t.Error("an unknown action is answered")
	}
	stop()
	_, _ = io.Copy(io.Discard, r)
	if got := <-code; got != 1 || !strings.Contains(stderr.String(), "DescribeVpcs") {
		t.Errorf("exit %d: %s, want 1 and the action's name", got, stderr.String())
	}
}
