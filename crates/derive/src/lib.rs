//! `#[derive(Shareable)]`, for the crate `lockstead`, which re-exports it as
//! `lockstead::shared::Shareable`.
//!
//! # Role
//! Writes the shape of a struct down, field by field, and refuses what has none: enums,
//! unions, structs whose layout is the compiler's choice, packed ones. What the fields
//! are is the business of their types: a field that is not `Shareable` is an error at
//! that field.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Attribute, Data, DeriveInput, Error, Fields, GenericParam, Result};

/// Implements `lockstead::shared::Shareable` for a struct whose fields all are.
///
/// The struct has `#[repr(C)]`, or `#[repr(transparent)]`, and needs no dropping. Of a
/// generic struct the bounds are those that it has itself: a parameter that is the type
/// of a field needs `T: Shareable`.
#[proc_macro_derive(Shareable)]
pub fn shareable(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let input = syn::parse_macro_input!(input as DeriveInput);
    implement(&input).unwrap_or_else(|error| error.to_compile_error()).into()
}

fn implement(input: &DeriveInput) -> Result<TokenStream> {
    let fields = match &input.data {
        Data::Struct(data) => &data.fields,
        Data::Enum(data) => {
            return Err(Error::new(
                data.enum_token.span,
                "an enum does not allow every bit pattern, and a peer may write any: keep a \
                 number, and match it where it is used",
            ));
        }
        Data::Union(data) => {
            return Err(Error::new(
                data.union_token.span,
                "a union does not say which of its fields is there: use a struct",
            ));
        }
    };
    check_repr(&input.attrs, input.ident.span())?;
    for parameter in &input.generics.params {
        if let GenericParam::Lifetime(lifetime) = parameter {
            return Err(Error::new(
                lifetime.span(),
                "a reference leads nowhere in another process: keep an index or an offset",
            ));
        }
    }
    let name = &input.ident;
    let text = name.to_string();
    let (generics, arguments, bounds) = input.generics.split_for_impl();
    let entries = entries(fields);
    let here = quote!(::lockstead::shared);
    let no_drop = quote! {
        ::core::assert!(
            !::core::mem::needs_drop::<Self>(),
            "a type in shared memory is never dropped: it must not need to be"
        );
    };
    // Where the constant below is used by nobody, the compiler would not look at it.
    let at_once = input.generics.params.is_empty().then(|| {
        quote! { const _: () = { let _ = <#name as #here::Shareable>::SHAPE; }; }
    });
    Ok(quote! {
        // SAFETY: `repr(C)` or `repr(transparent)`, neither packed nor with a lifetime;
        // all fields are `Shareable`, or this does not compile; it needs no dropping. The
        // shape is made from the compiler's own offsets.
        unsafe impl #generics #here::Shareable for #name #arguments #bounds {
            const SHAPE: #here::Shape = {
                #no_drop
                #here::Shape::Struct {
                    name: #text,
                    size: ::core::mem::size_of::<Self>(),
                    fields: &[#(#entries),*],
                }
            };
        }
        #at_once
    })
}

/// Builds a `Field` for each field.
fn entries(fields: &Fields) -> Vec<TokenStream> {
    fields
        .members()
        .zip(fields)
        .map(|(member, field)| {
            let text = match &member {
                syn::Member::Named(name) => name.to_string(),
                syn::Member::Unnamed(index) => index.index.to_string(),
            };
            let text = text.strip_prefix("r#").unwrap_or(&text);
            let ty = &field.ty;
            let shape = quote_spanned! {ty.span()=>
                &<#ty as ::lockstead::shared::Shareable>::SHAPE
            };
            quote! {
                ::lockstead::shared::Field {
                    name: #text,
                    offset: ::core::mem::offset_of!(Self, #member),
                    shape: #shape,
                }
            }
        })
        .collect()
}

/// Tells whether two programs agree about the layout.
fn check_repr(attributes: &[Attribute], name: Span) -> Result<()> {
    let mut fixed = false;
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("repr")) {
        attribute.parse_nested_meta(|meta| {
            if meta.path.is_ident("C") || meta.path.is_ident("transparent") {
                fixed = true;
            } else if meta.path.is_ident("packed") {
                return Err(meta.error(
                    "no reference to a field of a packed struct is aligned: reorder the fields, \
                     or fill the gaps, instead",
                ));
            }
            if meta.input.peek(syn::token::Paren) {
                let content;
                syn::parenthesized!(content in meta.input);
                content.parse::<TokenStream>()?;
            }
            Ok(())
        })?;
    }
    if fixed {
        return Ok(());
    }
    Err(Error::new(
        name,
        "two programs are to agree about the layout, which without it is the compiler's choice: \
         add #[repr(C)]",
    ))
}
