"""The routes, one router per room of the API. Each route is a few lines over the service."""
