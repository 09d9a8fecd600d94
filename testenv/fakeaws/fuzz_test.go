package fakeaws_test

import (
	"encoding/xml"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"cnictl/testenv/fakeaws"
)

// For any request, the answer is well-formed XML and the world stays consistent.
func FuzzEC2(f *testing.F) {
	const head = "Version=2016-11-15&Action="
	for _, seed := range []string{"", "Action=", head + "DescribeNetworkInterfaces&Filter.1.Name=tag%3Ax&Filter.1.Value.1=%2A&MaxResults=5",
		head + "CreateNetworkInterface&SubnetId=subnet-0fa4e000000000001&SecondaryPrivateIpAddressCount=3&TagSpecification.1.ResourceType=network-interface&TagSpecification.1.Tag.1.Key=k&TagSpecification.1.Tag.1.Value=v",
		head + "CreateNetworkInterface&SubnetId=subnet-0fa4e000000000001&Ipv4PrefixCount=-1", head + "CreateNetworkInterface&SubnetId=subnet-0fa4e000000000001&SecondaryPrivateIpAddressCount=-1", head + "AttachNetworkInterface&NetworkInterfaceId=eni-0fa4e000000000001&InstanceId=i-0fa4e000000000001&DeviceIndex=1",
		head + "AssignPrivateIpAddresses&NetworkInterfaceId=eni-0fa4e000000000001&SecondaryPrivateIpAddressCount=2", head + "AssignPrivateIpAddresses&NetworkInterfaceId=eni-0fa4e000000000001&Ipv4PrefixCount=1",
		head + "AssignPrivateIpAddresses&NetworkInterfaceId=eni-0fa4e000000000001&Ipv4Prefix.1=10.0.0.16%2F28&PrivateIpAddress.1=10.0.0.17",
		head + "UnassignPrivateIpAddresses&NetworkInterfaceId=eni-0fa4e000000000001&PrivateIpAddress.1=10.0.0.4", head + "ModifyNetworkInterfaceAttribute&NetworkInterfaceId=eni-0fa4e000000000001&SecurityGroupId.1=sg-0",
		head + "ModifyNetworkInterfaceAttribute&NetworkInterfaceId=eni-0fa4e000000000001&Attachment.AttachmentId=a&Attachment.DeleteOnTermination=true", head + "DetachNetworkInterface&AttachmentId=eni-attach-0fa4e000000000001&Force=x",
		head + "DeleteNetworkInterface&NetworkInterfaceId=eni-0fa4e000000000001", head + "CreateTags&ResourceId.1=eni-0fa4e000000000001&Tag.1.Key=a&Tag.1.Value=%00%ff", head + "DescribeInstances&InstanceId.1=i-0fa4e000000000001",
		head + "DescribeInstanceTypes&InstanceType.1=m5.large", head + "DescribeSubnets&NextToken=c3VibmV0OjE", head + "DescribeTags&Filter.1.Name=key", head + "DescribeSecurityGroups&GroupId.1=sg-0fa4e000000000001",
		head + "AssignIpv6Addresses&NetworkInterfaceId=eni-0fa4e000000000001&Ipv6PrefixCount=1", head + "UnassignIpv6Addresses&NetworkInterfaceId=eni-0fa4e000000000001&Ipv6Prefix.1=x",
		"%zz", head + "DescribeSubnets&Filter.01.Name=x", head + "DescribeSubnets&Filter.99999999999999999999.Name=x"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) {
		w, v := newWorld(t, fakeaws.Options{})
		addInstance(t, w, "m5.large", addSubnet(t, w, fakeaws.SubnetSpec{VPCID: v.ID}, "10.0.0.0/24").ID)
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=AKIA/20260101/us-west-2/ec2/aws4_request, SignedHeaders=host, Signature=0")
		rec := httptest.NewRecorder()
		fakeaws.EC2Handler(w).ServeHTTP(rec, r)
		var answer struct {
			XMLName xml.Name
			Codes   []string `xml:"Errors>Error>Code"`
			ID      string   `xml:"requestId"`
		}
		if err := xml.Unmarshal(rec.Body.Bytes(), &answer); err != nil {
			t.Fatalf("answer to %q is no XML: %v\n%s", body, err, rec.Body)
		}
		if good := rec.Code == http.StatusOK; good != (len(answer.Codes) == 0) || good != (answer.ID != "") {
			t.Errorf("status %d with codes %q, request id %q", rec.Code, answer.Codes, answer.ID)
		}
		if calls := w.Calls(); len(calls) != 1 || (calls[0].Code == "") != (rec.Code == http.StatusOK) {
			t.Errorf("log %+v, status %d", calls, rec.Code)
		}
	})
}

// No metadata path gets an empty answer, and a 404 caused by the client is recorded.
func FuzzIMDSPath(f *testing.F) {
	for _, seed := range []string{"/latest/meta-data/", "/latest/meta-data/mac", "/latest/meta-data/network/interfaces/macs/", "/latest/meta-data/network/interfaces/macs/02:fa:4e:00:00:01/local-ipv4s",
		"/latest/meta-data/network/interfaces/macs/02:fa:4e:00:00:01/", "/latest/dynamic/instance-identity/document", "/latest", "/", "//", "/latest//meta-data", "/latest/meta-data/network/interfaces/macs/é/x",
		"/latest/meta-data/iam/security-credentials/node-role", "/latest/api/token", "/1.0/meta-data/"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, path string) {
		w, v := newWorld(t, fakeaws.Options{})
		i := addInstance(t, w, "m5.large", addSubnet(t, w, fakeaws.SubnetSpec{VPCID: v.ID}, "10.0.0.0/24").ID)
		h := fakeaws.IMDSHandler(w, fakeaws.OneInstance(i.ID))
		rec := httptest.NewRecorder()
		put := httptest.NewRequest(http.MethodPut, "/latest/api/token", nil)
		put.Header.Set("X-aws-ec2-metadata-token-ttl-seconds", "60")
		h.ServeHTTP(rec, put)
		get := httptest.NewRequest(http.MethodGet, "/", nil)
		get.URL.Path = path
		get.Header.Set("X-aws-ec2-metadata-token", rec.Body.String())
		rec = httptest.NewRecorder()
		h.ServeHTTP(rec, get)
		switch {
		case rec.Code == http.StatusOK && rec.Body.Len() == 0:
			t.Errorf("%q: 200 with nothing", path)
		case rec.Code == http.StatusOK && len(w.Violations()) > 0:
			t.Errorf("%q: 200 and violations %q", path, w.Violations())
		case rec.Code != http.StatusOK && rec.Code != http.StatusNotFound && rec.Code != http.StatusMethodNotAllowed:
			t.Errorf("%q: status %d", path, rec.Code)
		}
	})
}
