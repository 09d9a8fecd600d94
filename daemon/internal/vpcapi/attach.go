package vpcapi

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"cnictl/daemon/ipam"
)

// AttachENI attaches an ENI to the instance. EC2 completes the attachment after it
// answers; the link appears on the node even later.
func (c *Client) AttachENI(ctx context.Context, id ipam.ENIID, card, device int) (attachmentID string, err error) {
	defer fail(&err)
	out, err := call(ctx, c, "AttachNetworkInterface", c.ec2.AttachNetworkInterface, &ec2.AttachNetworkInterfaceInput{
		NetworkInterfaceId: aws.String(string(id)), InstanceId: aws.String(c.conf.InstanceID),
		DeviceIndex: aws.Int32(int32(device)), NetworkCardIndex: aws.Int32(int32(card))})
	if err != nil {
		return "", fmt.Errorf("attach ENI %s at card %d device %d: %w", id, card, device, err)
	}
	attachmentID = aws.ToString(out.AttachmentId)
	if err := checkID("attachmentId", "eni-attach-", attachmentID); err != nil {
		return "", fmt.Errorf("attach ENI %s at card %d device %d: %w", id, card, device, err)
	}
	return attachmentID, nil
}

// SetDeleteOnTermination makes EC2 delete the ENI together with the instance.
func (c *Client) SetDeleteOnTermination(ctx context.Context, id ipam.ENIID, attachmentID string) (err error) {
	defer fail(&err)
	_, err = call(ctx, c, "ModifyNetworkInterfaceAttribute", c.ec2.ModifyNetworkInterfaceAttribute, &ec2.ModifyNetworkInterfaceAttributeInput{
		NetworkInterfaceId: aws.String(string(id)),
		Attachment:         &types.NetworkInterfaceAttachmentChanges{AttachmentId: aws.String(attachmentID), DeleteOnTermination: aws.Bool(true)},
	})
	if err != nil {
		return fmt.Errorf("set delete-on-termination of ENI %s: %w", id, err)
	}
	return nil
}

// DetachENI starts a detach; DescribeENIs shows when it is complete. If the attachment
// does not exist, IsNotFound holds for the error.
func (c *Client) DetachENI(ctx context.Context, attachmentID string) (err error) {
	defer fail(&err)
	_, err = call(ctx, c, "DetachNetworkInterface", c.ec2.DetachNetworkInterface, &ec2.DetachNetworkInterfaceInput{AttachmentId: aws.String(attachmentID)})
	if err != nil {
		return fmt.Errorf("detach ENI attachment %s: %w", attachmentID, err)
	}
	return nil
}
