// Soroban authorization entries for tests, signed like a payer's wallet signs them. Every part can be changed: the
// credential variant, the signing keys, the bytes of a signature, the passphrase. Nothing here checks the result, so a
// test can build any wrong entry.
import { Address, buildAuthorizationEntryPreimage, hash, type Keypair, StrKey, xdr } from "@stellar/stellar-sdk"

/** The variants of an authorization's credentials. The current official client sends `address`. */
export type CredentialVariant = "address" | "addressV2" | "delegates" | "sourceAccount"

/** The signer: an account with one key, or a contract whose `__check_auth` takes the result of `sign`. */
export type Payer = Keypair | { readonly contract: string; readonly sign: (payload: Uint8Array) => xdr.ScVal }

/** The address of a payer, `G…` or `C…`. */
export const addressOf = (payer: Payer): string => ("contract" in payer ? payer.contract : payer.publicKey())

/** A contract call as an authorized invocation. */
export const invocationOf = (
  call: xdr.InvokeContractArgs,
  subInvocations: ReadonlyArray<xdr.SorobanAuthorizedInvocation> = []
): xdr.SorobanAuthorizedInvocation =>
  new xdr.SorobanAuthorizedInvocation({
    function: xdr.SorobanAuthorizedFunction.sorobanAuthorizedFunctionTypeContractFn(call),
    subInvocations: [...subInvocations]
  })

/** The arguments of a call to `contract`. */
export const callOf = (
  contract: string,
  functionName: string,
  args: ReadonlyArray<xdr.ScVal>
): xdr.InvokeContractArgs =>
  new xdr.InvokeContractArgs({ contractAddress: new Address(contract).toScAddress(), functionName, args: [...args] })

/** One element of an account's signature vector: the public key and the 64 bytes. */
export const signatureMap = (publicKey: Uint8Array, signature: Uint8Array): xdr.ScVal =>
  xdr.ScVal.scvMap([
    new xdr.ScMapEntry({ key: xdr.ScVal.scvSymbol("public_key"), val: xdr.ScVal.scvBytes(publicKey) }),
    new xdr.ScMapEntry({ key: xdr.ScVal.scvSymbol("signature"), val: xdr.ScVal.scvBytes(signature) })
  ])

export interface AuthorizationOptions {
  readonly payer: Payer
  readonly invocation: xdr.SorobanAuthorizedInvocation
  readonly nonce: bigint
  /** The signature is valid up to this ledger. */
  readonly expirationLedger: number
  readonly networkPassphrase: string
  /** Default `address`. */
  readonly credentials?: CredentialVariant | undefined
  /** Address in the credentials, if it is not the payer's. */
  readonly address?: string | undefined
  /** Keys that sign in place of the payer's own, sorted as the network requires. */
  readonly signers?: ReadonlyArray<Keypair> | undefined
  /** Changes the 64 bytes of each signature. */
  readonly signature?: ((signature: Uint8Array) => Uint8Array) | undefined
  /** Replaces the whole signature value; `payload` is the 32 bytes that should have been signed. */
  readonly signatureValue?: ((value: xdr.ScVal, payload: Uint8Array) => xdr.ScVal) | undefined
}

const wrap = (variant: CredentialVariant, credentials: xdr.SorobanAddressCredentials): xdr.SorobanCredentials => {
  switch (variant) {
    case "address":
      return xdr.SorobanCredentials.sorobanCredentialsAddress(credentials)
    case "addressV2":
      return xdr.SorobanCredentials.sorobanCredentialsAddressV2(credentials)
    case "delegates":
      return xdr.SorobanCredentials.sorobanCredentialsAddressWithDelegates(
        new xdr.SorobanAddressCredentialsWithDelegates({ addressCredentials: credentials, delegates: [] })
      )
    case "sourceAccount":
      return xdr.SorobanCredentials.sorobanCredentialsSourceAccount()
  }
}

/** A signed authorization entry. `sourceAccount` credentials have no signature. */
export const signAuthorization = (options: AuthorizationOptions): xdr.SorobanAuthorizationEntry => {
  const variant = options.credentials ?? "address"
  const entryWith = (signature: xdr.ScVal) =>
    new xdr.SorobanAuthorizationEntry({
      rootInvocation: options.invocation,
      credentials: wrap(
        variant,
        new xdr.SorobanAddressCredentials({
          address: new Address(options.address ?? addressOf(options.payer)).toScAddress(),
          nonce: options.nonce,
          signatureExpirationLedger: options.expirationLedger,
          signature
        })
      )
    })
  const unsigned = entryWith(xdr.ScVal.scvVoid())
  if (variant === "sourceAccount") return unsigned
  const preimage = buildAuthorizationEntryPreimage(unsigned, options.expirationLedger, options.networkPassphrase)
  const payload = hash(preimage.toXdr())
  const change = options.signatureValue ?? ((value) => value)
  if (options.signers === undefined && "contract" in options.payer) {
    return entryWith(change(options.payer.sign(payload), payload))
  }
  const keys = [...(options.signers ?? [options.payer as Keypair])].sort((a, b) =>
    compareBytes(a.rawPublicKey(), b.rawPublicKey())
  )
  const bytes = options.signature ?? ((signature) => signature)
  const value = xdr.ScVal.scvVec(
    keys.map((key) => signatureMap(StrKey.decodeEd25519PublicKey(key.publicKey()), bytes(key.sign(payload))))
  )
  return entryWith(change(value, payload))
}

const compareBytes = (a: Uint8Array, b: Uint8Array): number => {
  for (let i = 0; i < a.length; i++) {
    const difference = a[i]! - b[i]!
    if (difference !== 0) return difference
  }
  return 0
}
