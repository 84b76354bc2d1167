//! Coverage of the test cases of grpc-ecosystem's grpc-httpjson-transcoding, the library in Envoy and Google's proxies.
//! `google.api.http` has no official test suite.
//!
//! `docs/testing.md` has the number of cases and of those that hold. The cases are theirs, tests and values are ours.
//! If a case holds except for a part, that part is noted.

use std::fs;
use std::path::Path;

/// Folders of our tests.
const FOLDERS: [&str; 4] = ["src/transcoding", "tests/it", "../openapi/src/rules", "../openapi/tests/it"];

/// One line per case: our test if it holds, `!` and the reason if the specification differs, `-` and the reason if it
/// does not apply.
const VECTORS: &str = "
path_matcher_test
WildCardMatchesRoot: routes::the_more_literal_goes_first
WildCardMatches: routes::the_more_literal_goes_first
VariableBindings: routes::variables_are_parts_of_the_path
PercentEscapesUnescapedForSingleSegment: routes::a_segment_is_decoded_and_segments_keep_their_slashes
PercentEscapesUnescapedForSingleSegmentAllAsciiChars: percent::all_of_ascii_comes_back
PercentEscapesNotUnescapedForMultiSegment1: routes::a_segment_is_decoded_and_segments_keep_their_slashes
PercentEscapesNotUnescapedForMultiSegment2: routes::a_segment_is_decoded_and_segments_keep_their_slashes
OnlyUnreservedCharsAreUnescapedForMultiSegmentMatchUnescapeAllExceptReservedImplicit: ! all but %2F is decoded
OnlyUnreservedCharsAreUnescapedForMultiSegmentMatchUnescapeAllExceptReservedExplicit: ! all but %2F is decoded
OnlyUnreservedCharsAreUnescapedForMultiSegmentMatchUnescapeAllExceptSlash: percent::each_place_has_its_rule
OnlyUnreservedCharsAreUnescapedForMultiSegmentMatchUnescapeAll: - an option; %2F stays as the specification has it
CustomVerbIssue: routes::verbs_go_before_colons_in_segments
MatchUnregisteredCustomVerb: - an option; a colon in a segment is no verb unless there is one of that name
VariableBindingsWithCustomVerb: routes::verbs_go_before_colons_in_segments
ConstantSuffixesWithVariable: routes::behind_two_stars_the_longest_end_goes_first
InvalidTemplates: template::what_is_no_template_is_told_with_its_place
CustomVerbMatches: routes::verbs_go_before_colons_in_segments
CustomVerbMatch2: routes::verbs_go_before_colons_in_segments
CustomVerbMatch3: routes::verbs_go_before_colons_in_segments
CustomVerbMatch4: routes::verbs_go_before_colons_in_segments
CustomVerbMatch5: routes::verbs_go_before_colons_in_segments
RejectPartialMatches: routes::literals_are_whole_paths
LookupReturnsNullIfMatcherEmpty: routes::without_rules_there_are_no_paths
LookupSimplePaths: routes::literals_are_whole_paths
ReplacevoidForPath: - two routes of one form are told when the server starts
LookupReturnsNullForOverspecifiedPath: routes::literals_are_whole_paths
ReturnNullvoidSharedPtrForUnderspecifiedPath: routes::literals_are_whole_paths
DifferentHttpMethod: routes::methods_of_http
BodyFieldPathTest: ! a body is a field of the message itself, and no deeper one
VariableBindingsWithQueryParams: requests::variables_of_paths
VariableBindingsWithQueryParamsEncoding: percent::each_place_has_its_rule
QueryParameterNotUnescapePlus: requests::plus_is_a_space_unless_it_is_not
QueryParameterUnescapePlus: requests::plus_is_a_space_unless_it_is_not
VariableBindingsWithQueryParamsAndSystemParams: - an option; what begins with a dollar sign is left alone
WildCardMatchesManyWithoutStackOverflow: routes::many_slashes_cost_one_look
LookupSilentlyFailsOnDuplicate: - two routes of one form are told when the server starts
RegisterFailsOnDuplicateIfOptIn: rules::routes_of_one_form_are_a_conflict

http_template_test
ParseTest1: template::templates
ParseTest2: template::templates
ParseTest3a: template::templates
ParseTest3b: template::templates
ParseTest4a: template::verbs
ParseTest4b: template::verbs
ParseTest5: template::templates
ParseTest6: template::templates
ParseTest7: template::templates
ParseTest8: template::templates
ParseTest9: template::templates
ParseTest10: template::templates
ParseTest11: template::templates
ParseTest12: template::templates
ParseTest13: template::templates
ParseTest14: template::templates
ParseTest15: template::templates
ParseTest16: template::verbs
CustomVerbTests: template::verbs
MoreVariableTests: template::templates
VariableAndCustomVerbTests: template::verbs
RootPATH: template::templates
ErrorTests: template::what_is_no_template_is_told_with_its_place
ParseVerbTest2: template::verbs
ParseVerbTest3: template::verbs
ParseVerbTest4: template::verbs
ParseNonVerbTest: template::what_is_no_template_is_told_with_its_place

json_request_translator_test: objects and arrays that end in a comma, which many of them have, are no JSON here
Simple: transcoded::path_query_and_body_are_the_message
Nested: requests::a_body_is_the_message_or_a_field
Prefix: requests::a_body_is_the_message_or_a_field
Bindings: requests::the_path_goes_before_the_body
MorePrefixAndBindings: ! a body is a field of the message itself, and no deeper one
OnlyBindings: requests::variables_of_paths
ScalarBody: requests::a_body_is_the_message_or_a_field
StructValueFlat: requests::a_struct_may_be_the_message
StructValueNested: requests::a_struct_may_be_the_message
Empty: requests::a_body_is_the_message_or_a_field
Large: transcoded::messages_are_of_any_size_and_come_in_any_pieces
OneByteChunks: transcoded::messages_are_of_any_size_and_come_in_any_pieces
UnknownsIgnored: requests::what_is_unknown_may_be_left_alone, which is an option, as ProtoJSON has it
ErrorInvalidJson: requests::bodies_that_are_no_json_are_refused, but that spaces are an empty message
WrongBindingType: requests::variables_of_paths
StreamingSimple: transcoded_streams::requests_are_rows_or_arrays
StreamingNested: transcoded_streams::streams_are_of_any_length
StreamingPrefixAndBindings: transcoded_streams::a_message_of_a_stream_may_be_a_field
Streaming1KMessages: transcoded_streams::streams_are_of_any_length
StreamingScalars: transcoded_streams::a_message_of_a_stream_may_be_a_field
StreamingArrays: transcoded_streams::a_message_of_a_stream_may_be_a_field
StreamingEmptyStream: transcoded_streams::requests_are_rows_or_arrays
StreamingEmptyMessages: transcoded_streams::streams_are_of_any_length
StreamingErrorNotAnArray: - messages behind each other are a stream, too

response_to_json_translator_test
Simple: responses::defaults_are_told_as_deep_as_messages_are_there
SimpleAlwaysPrintPrimitiveFields: responses::defaults_are_told_as_deep_as_messages_are_there
Nested: responses::defaults_are_told_as_deep_as_messages_are_there
StructValueFlat: responses::defaults_are_told_as_deep_as_messages_are_there
StructValueNested: responses::defaults_are_told_as_deep_as_messages_are_there
NestedAlwaysPrintPrimitiveFields: responses::defaults_are_told_as_deep_as_messages_are_there
Empty: responses::defaults_are_told_as_deep_as_messages_are_there
EmptyAlwaysPrintPrimitiveFields: responses::defaults_are_told_as_deep_as_messages_are_there
DifferentSizes: transcoded::messages_are_of_any_size_and_come_in_any_pieces
StreamingOneMessage: transcoded_streams::streams_are_of_any_length
StreamingThreeMessages: transcoded_streams::streams_are_of_any_length
StreamingNoMessages: transcoded_streams::streams_are_of_any_length
StreamingEmptyMessage: transcoded_streams::streams_are_of_any_length
Streaming50Messages: transcoded_streams::streams_are_of_any_length
StreamingNested: transcoded_streams::streams_are_of_any_length
StreamingDifferentSizes: transcoded_streams::streams_are_of_any_length
ErrorInvalidType: - a type that the descriptors lack is told when the server starts
DirectTest: - answers come as messages from the process itself, and not in pieces of envelopes
StreamingDirectTest: transcoded_streams::each_message_leaves_when_it_is_there
StreamingNewlineDelimitedDirectTest: transcoded_streams::each_message_leaves_when_it_is_there
StreamingSSEStyleDelimitedDirectTest: transcoded_streams::each_message_leaves_when_it_is_there, and the event `end`
Streaming5KMessages: transcoded_streams::streams_are_of_any_length
IncompleteFrameHeader: - answers come as messages from the process itself, and not in envelopes
InvalidFrameFlag: - answers come as messages from the process itself, and not in envelopes
IncompleteFrame: - answers come as messages from the process itself, and not in envelopes

request_weaver_test
PassThrough: requests::what_the_path_has_is_woven_into_the_body_at_any_depth
Level0Bindings: requests::what_the_path_has_is_woven_into_the_body_at_any_depth
Level1Bindings: requests::what_the_path_has_is_woven_into_the_body_at_any_depth
Level2Bindings: requests::what_the_path_has_is_woven_into_the_body_at_any_depth
Level2WeaveNewSubTree: requests::what_the_path_has_is_woven_into_the_body_at_any_depth
MixedBindings: requests::what_the_path_has_is_woven_into_the_body_at_any_depth
MoreMixedBindings: requests::what_the_path_has_is_woven_into_the_body_at_any_depth
CollisionIgnored: ! the body has what the path does not bind: the path goes first
CollisionReportedInvalidBinding: requests::a_value_in_path_and_body_is_that_of_the_path
CollisionNotReported: requests::a_value_in_path_and_body_is_that_of_the_path
CollisionReported: - an option; the path goes first
CollisionRepeated: ! with all of the body there are no parameters, and a part of a path is one value
IgnoreListTest: requests::what_the_path_has_is_woven_into_the_body_at_any_depth
";

#[test]
fn each_case_has_its_test() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let docs = fs::read_to_string(package.join("../../docs/testing.md")).unwrap();
    for suite in VECTORS.trim().split("\n\n") {
        let (name, cases) = suite.split_once('\n').unwrap();
        let [mut hold, mut differ, mut do_not_apply] = [0; 3];
        for case in cases.lines() {
            let (_, ours) = case.split_once(": ").unwrap();
            match &ours[..2] {
                "! " => differ += 1,
                "- " => do_not_apply += 1,
                _ => {
                    hold += 1;
                    let (test, _) = ours.split_once(',').unwrap_or((ours, ""));
                    let (module, function) = test.split_once("::").unwrap();
                    let is_there = FOLDERS.into_iter().any(|folder| {
                        let text = fs::read_to_string(package.join(format!("{folder}/{module}.rs")));
                        text.is_ok_and(|text| text.contains(&format!("fn {function}()")))
                    });
                    assert!(is_there, "{case}");
                }
            }
        }
        let (name, _) = name.split_once(':').unwrap_or((name, ""));
        let cells = [cases.lines().count(), hold, differ, do_not_apply].map(|count| match count {
            0 => String::new(),
            count => format!(" {count}"),
        });
        let row = format!("| `{name}` |{} |", cells.join(" |"));
        assert!(docs.contains(&row), "{row}");
    }
}
