"""Notifications: the events that controllers record, sent to chats, mailboxes and webhooks."""
