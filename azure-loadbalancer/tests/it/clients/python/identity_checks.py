"""Whether azure-identity gets a token from the emulator's instance metadata service. ENDPOINT says where that is."""

from azure.identity import ManagedIdentityCredential

token = ManagedIdentityCredential().get_token("https://management.azure.com/.default")
assert token.token == "the-token", token.token
print("checked managed_identity")
