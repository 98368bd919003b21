// The credentials of an authorization that is written here. Since protocol 27 (CAP-71) what is signed includes the
// address too (version 2), so that a signature is valid for one account even if another shares its key. Earlier
// protocols have only the first version; both are read everywhere.
import { xdr } from "@stellar/stellar-sdk/base"

/** The first protocol that takes credentials of version 2. */
export const ADDRESS_V2_SINCE = 27

/** The credentials in the newest version that a network of this protocol takes. */
export const addressCredentials = (
  credentials: xdr.SorobanAddressCredentials,
  protocolVersion: number
): xdr.SorobanCredentials =>
  protocolVersion >= ADDRESS_V2_SINCE
    ? xdr.SorobanCredentials.sorobanCredentialsAddressV2(credentials)
    : xdr.SorobanCredentials.sorobanCredentialsAddress(credentials)
