// An authorization entry as received: its credentials, and checks of its form. A malformed entry fails the whole call
// before any of it runs, whether or not the entry would ever be used.
import { AuthorizedFunctionType, CredentialsType } from "../xdr/types.ts"
import { HostError } from "../host/HostError.ts"
import { checkScVal, checkSymbol } from "../xdr/ScVal.ts"
import {
  codec,
  compareBytes,
  type SorobanAddressCredentials,
  type SorobanAuthorizationEntry,
  type SorobanAuthorizedInvocation,
  type SorobanDelegateSignature
} from "../xdr/Xdr.ts"

const checkInvocation = (invocation: SorobanAuthorizedInvocation, protocol: number): void => {
  const fn = invocation.function
  if (fn.type === AuthorizedFunctionType.contract) {
    checkSymbol(fn.contractFn.functionName.bytes)
    if (fn.contractFn.contractAddress.type > 2) throw HostError.of("Value", "InvalidInput", "unexpected address type")
    for (const arg of fn.contractFn.args) checkScVal(arg, protocol)
  }
  for (const sub of invocation.subInvocations) checkInvocation(sub, protocol)
}

/** Delegates within one another; the network converts no value that is nested more deeply. */
const DELEGATE_LEVELS_MAX = 96

const checkDelegates = (delegates: ReadonlyArray<SorobanDelegateSignature>, protocol: number, level = 1): void => {
  if (delegates.length > 0 && level > DELEGATE_LEVELS_MAX)
    throw HostError.silent("Context", "ExceededLimit", "delegates are nested too deeply")
  let previous: Uint8Array | undefined
  for (const delegate of delegates) {
    const encoded = codec.ScAddress.encode(delegate.address)
    if (previous !== undefined && compareBytes(previous, encoded) >= 0) {
      throw HostError.of("Auth", "InvalidInput", "delegates are not sorted by address")
    }
    previous = encoded
    checkScVal(delegate.signature, protocol)
    checkDelegates(delegate.nestedDelegates, protocol, level + 1)
  }
}

/** The address credentials of any form, or undefined for source account credentials. */
export const credentialsOf = (entry: SorobanAuthorizationEntry): SorobanAddressCredentials | undefined => {
  const credentials = entry.credentials
  switch (credentials.type) {
    case CredentialsType.sourceAccount:
      return undefined
    case CredentialsType.address:
      return credentials.address
    case CredentialsType.addressV2:
      return credentials.addressV2
    case CredentialsType.addressWithDelegates:
      return credentials.addressWithDelegates.addressCredentials
  }
}

/** Refuses malformed values, symbols, and delegates that are not strictly ascending by address. */
export const checkEntry = (entry: SorobanAuthorizationEntry, protocol: number): void => {
  checkInvocation(entry.rootInvocation, protocol)
  const credentials = credentialsOf(entry)
  if (credentials !== undefined) checkScVal(credentials.signature, protocol)
  if (entry.credentials.type === CredentialsType.addressWithDelegates)
    checkDelegates(entry.credentials.addressWithDelegates.delegates, protocol)
}
